"""C function tasks: parsing, inference of sizes and extents, draws, and the reference built by gcc."""
