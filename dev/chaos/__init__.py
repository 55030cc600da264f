"""Workers and brokers killed, frozen and restarted under load; afterwards every record is counted."""
