"""Who answers when a policy says ask."""
