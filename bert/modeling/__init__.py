if __name__ != "bert.modeling":
    # The link at the root shows where the code is; imported through it, each
    # class would exist twice.
    raise ImportError("import bert.modeling instead of modeling")
