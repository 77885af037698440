"""The embeddable harness: what every front end calls."""
