import sys

from girih.cutile.runner import main

sys.exit(main(sys.argv[1:]))
