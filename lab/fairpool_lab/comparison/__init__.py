"""Policies side by side: one demand, one pool, every policy, and what each made of it."""
