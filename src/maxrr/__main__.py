"""`python -m maxrr` is the `maxrr` command."""

from maxrr.cli import app

if __name__ == "__main__":
    app()
