"""Frozen data that everything else speaks in: no behaviour beyond reading itself."""
