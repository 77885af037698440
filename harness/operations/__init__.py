"""From a tool call to the operations it would perform."""
