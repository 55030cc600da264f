"""Measurements side by side: this replicator, MirrorMaker 2 and the floor of the clients, on two local brokers."""
