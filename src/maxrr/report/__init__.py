"""Self-contained HTML pages, one look for all."""
