from common import packages

packages.check_of_script()
