if __name__ != "bert.modeling":
    # The root has a link to this folder. Imported through it, each class would
    # exist twice.
    raise ImportError("import bert.modeling instead of modeling")
