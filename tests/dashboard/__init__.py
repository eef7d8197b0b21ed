"""What the dashboard works out by itself, without a browser."""
