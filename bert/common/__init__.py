from bert.common import packages

packages.check_of_script()
