"""A repository copied into a box, and what changed there as a reviewed patch."""
