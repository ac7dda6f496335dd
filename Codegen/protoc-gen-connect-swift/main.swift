import ConnectCodegen

Plugin.run(StubGenerator())
