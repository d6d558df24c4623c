"""Decides a head: exact arithmetic, and bounds that are proved."""
