if __name__ != "bert.data":
    # The link `data` at the root is for readers. Imports through it would
    # create a second copy of each class.
    raise ImportError("import bert.data instead of data")
