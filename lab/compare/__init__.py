"""Side by side: what others do to forget, on the same records and networks, judged by its distance to retraining."""
