"""What developers run: a local Kafka, the demo, the bench and the chaos runs. Not part of the package."""
