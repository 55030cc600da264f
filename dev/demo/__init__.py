"""The demonstration: two clusters, live traffic, a worker, and a comparison of both sides at the end."""
