import girih.cutile

girih.cutile.install()
