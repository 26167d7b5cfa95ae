"""The control plane: turns FairPool and TenantWeight resources into one gateway per pool."""
