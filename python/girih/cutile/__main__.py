import sys

from girih.cutile.hosting import install
from girih.cutile.runner import Product, main

CUTILE = Product(
    module="girih.cutile",
    package="cuda.tile",
    distribution="cuda-tile",
    programs="cuTile programs",
    install=install,
    children="GIRIH_CUTILE",
    dumps=True,
)

sys.exit(main(sys.argv[1:], CUTILE))
