import sys

from girih.cutile.runner import Product, main
from girih.triton.hosting import install

TRITON = Product(
    module="girih.triton",
    package="triton",
    distribution="triton",
    programs="Triton programs",
    install=install,
    children="GIRIH_TRITON_CHILDREN",
)

sys.exit(main(sys.argv[1:], TRITON))
