"""A trained model and pictures it has not seen: predictions, and how right they are."""
