"""Formats that models speak, and fakes that replay them."""
