"""What the API server and the operator would say of resources in files, said without a cluster."""
