"""What Python programs use."""
