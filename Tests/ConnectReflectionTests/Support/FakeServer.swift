internal import Connect
internal import ConnectTesting
internal import SwiftProtobuf

@testable import ConnectReflection

typealias Request = Grpc_Reflection_V1_ServerReflectionRequest
typealias Response = Grpc_Reflection_V1_ServerReflectionResponse

/// A reflection service in memory.
struct FakeServer {
  let transport = InMemoryTransport()

  init(_ version: ReflectionVersion = .v1, _ answer: @escaping @Sendable (Request) throws -> Response?) {
    self.transport.onBidirectionalStream(version.method) { requests, responses, _ in
      for try await request in requests {
        if let response = try answer(request) { try await responses.send(response) }
      }
    }
  }

  func client(
    _ networkProtocol: NetworkProtocol = .grpc,
    codec: any Codec = ProtoCodec(),
    limits: ReflectionClient.Limits = .defaults
  ) -> ReflectionClient {
    let config = ProtocolClientConfig(
      host: "http://memory",
      networkProtocol: networkProtocol,
      codec: codec
    )
    return ReflectionClient(ProtocolClient(httpClient: self.transport, config: config), limits: limits)
  }
}

extension Response {
  static func files(_ files: [File]) -> Response {
    .with { $0.fileDescriptorResponse.fileDescriptorProto = files.compactMap { try? $0.serializedData() } }
  }

  static func services(_ names: [String]) -> Response {
    .with { $0.listServicesResponse.service = names.map { name in .with { $0.name = name } } }
  }

  static func error(_ code: Code, _ message: String = "") -> Response {
    .with {
      $0.errorResponse.errorCode = Int32(code.rawValue)
      $0.errorResponse.errorMessage = message
    }
  }
}

extension FakeServer {
  /// Serves the files of a set, each without its imports, like a server that lets the client request them.
  init(
    _ version: ReflectionVersion,
    _ set: ProtoFileSet,
    asked: @escaping @Sendable (Request) -> Void
  ) {
    self.init(version) { request in
      asked(request)
      switch request.messageRequest {
      case .listServices: return .services(set.serviceNames)
      case .fileByFilename(let name):
        return set.index.file(named: name).map { .files([$0]) } ?? .error(.notFound)
      case .fileContainingSymbol(let name):
        // Like some servers, this server does not know members of types.
        guard let place = set.index.place(of: name), set.index.isType(name) else {
          return .error(.notFound, "no \(name)")
        }
        return .files([set.files[place.file]])
      default: return .error(.unimplemented)
      }
    }
  }
}

extension SymbolIndex {
  fileprivate func isType(_ name: String) -> Bool {
    switch self.place(of: name)?.declaration {
    case .message, .enumeration, .service, .extension: true
    case .field, .method, .value, nil: false
    }
  }
}

extension File {
  /// - Parameter uses: The full name of a type that a message of the file has a field of; nil for no message.
  init(_ name: String, imports: [String] = [], services: [String] = [], uses type: String? = nil) {
    self.init()
    if let type {
      self.messageType = [
        .with {
          $0.name = "Holder"
          $0.field = [
            .with {
              $0.name = "held"
              $0.number = 1
              $0.label = .optional
              $0.type = .message
              $0.typeName = ".\(type)"
            }
          ]
        }
      ]
    }
    self.name = name
    self.syntax = "proto3"
    self.dependency = imports
    self.service = services.map { name in .with { $0.name = name } }
  }
}
