"""Boxes: a container, a host process, or a tree in memory behind one port."""
