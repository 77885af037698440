"""Run AI agents on code nobody vouches for: judged, boxed, recorded, reviewed."""

__version__ = "0.1.0"
