"""What workers do."""
