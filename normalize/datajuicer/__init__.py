"""data-juicer recipes, and the process that runs them."""
