"""How C programs are made up: styles, names, statements, formulas, and the `Grammar` families write with."""
