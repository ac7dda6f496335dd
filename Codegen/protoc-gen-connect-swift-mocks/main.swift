import ConnectCodegen

Plugin.run(MockGenerator())
