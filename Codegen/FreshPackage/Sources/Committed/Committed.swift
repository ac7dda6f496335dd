/// The path of a method that the command plugin generated.
public let greetPath = Greeter_V1_GreeterServiceClient.Methods.greet.path
