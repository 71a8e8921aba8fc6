"""How workers are run: one contract (`base`), one pure description of what to run (`spec`), one module per way."""
