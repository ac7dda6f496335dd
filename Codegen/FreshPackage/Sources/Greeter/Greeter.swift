import Connect

/// Greets people by what the build-tool plugin generated.
public struct Greeter: Sendable {
  let service: any Greeter_V1_GreeterServiceClientInterface

  public init(service: any Greeter_V1_GreeterServiceClientInterface) {
    self.service = service
  }

  public func greet(_ name: String) async throws -> String {
    try await self.service.greet(.with { $0.name = name }).greeting
  }
}
