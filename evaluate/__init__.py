"""Are labels worth their price: evaluation on tables of several models, without a workspace."""
