"""What keeps flows running: tasks, the pipeline of a flow, its life cycle, and the workers of a target."""
