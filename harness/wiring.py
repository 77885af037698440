"""From a configuration to parts: the only place that names concrete classes."""
