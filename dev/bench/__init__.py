"""Measurements of a worker on two local brokers."""
