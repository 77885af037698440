"""What a model can call; everything goes through the Sandbox port."""
