"""Pure rules: no Kafka client, no event loop, no clock, no environment."""
