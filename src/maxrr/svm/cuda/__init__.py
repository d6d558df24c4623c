"""The search on a graphics processor, for many heads and runs at once. These modules need PyTorch."""
