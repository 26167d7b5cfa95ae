"""The data plane: one gateway per pool, which admits, orders and places what tenants send."""
