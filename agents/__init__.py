"""What runs: one module per replicated concern."""
