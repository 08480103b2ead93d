"""The bus: any application adds items to the manifest, processes them and asks about them."""
