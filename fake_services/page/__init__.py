"""A page of the running services: their books as they grow, and what can be done to them."""
