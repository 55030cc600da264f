"""The only package that imports aiokafka and confluent_kafka."""
