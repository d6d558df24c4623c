"""Finds a solution of each head, or nearly: whatever it gives is checked elsewhere."""
