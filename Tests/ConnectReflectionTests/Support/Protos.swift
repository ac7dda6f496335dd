internal import Foundation

/// The repository's proto files.
let protos = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Protos").standardized
  .path()
